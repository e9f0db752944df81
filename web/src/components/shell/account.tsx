import { CircleUserRound, LogOut, Monitor, Moon, Sun } from "lucide-react";

import { useSession } from "@/api/session";
import { IconButton } from "@/components/button";
import { Menu, MenuChoice, MenuItem, MenuLine } from "@/components/menu";
import { useLeave } from "@/components/shell/leave";
import { chooseTheme, useTheme } from "@/lib/theme";
import { chooseZone, useZone } from "@/lib/zone";

/** Who is logged in, and how the page shall look. */
export function AccountMenu() {
  const session = useSession();
  const leave = useLeave();

  return (
    <Menu
      trigger={
        <IconButton label="Account and looks">
          <CircleUserRound className="size-4.5" />
        </IconButton>
      }
    >
      <div className="px-2 py-1.5">
        <p className="max-w-56 truncate font-medium">{session.name}</p>
        <p className="text-xs text-muted">
          {session.role}
          {session.queues.length > 0 && `, of ${session.queues.join(", ")}`}
        </p>
      </div>
      <MenuLine />
      <MenuChoice
        label="Theme"
        value={useTheme()}
        onChange={chooseTheme}
        options={[
          { value: "system", label: "System", icon: <Monitor className="size-3.5" /> },
          { value: "light", label: "Light", icon: <Sun className="size-3.5" /> },
          { value: "dark", label: "Dark", icon: <Moon className="size-3.5" /> },
        ]}
      />
      <MenuLine />
      <MenuChoice
        label="Times in"
        value={useZone()}
        onChange={chooseZone}
        options={[
          { value: "local", label: "Local time" },
          { value: "utc", label: "UTC" },
        ]}
      />
      <MenuLine />
      {session.csrf !== null && (
        <MenuItem onSelect={() => void leave()}>
          <LogOut className="size-3.5" />
          Log out
        </MenuItem>
      )}
      <p className="px-2 py-1 text-xs text-muted">Rota {session.version}</p>
    </Menu>
  );
}
