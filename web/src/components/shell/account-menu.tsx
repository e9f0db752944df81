import { CircleUserRound, LogOut, Monitor, Moon, Sun } from "lucide-react";

import { useSession } from "@/api/session";
import { IconButton } from "@/components/buttons";
import { DropdownMenu, MenuRadioGroup, MenuItem, MenuSeparator } from "@/components/dropdown-menu";
import { useLogOut } from "@/components/shell/use-log-out";
import { setTheme, useTheme } from "@/lib/theme-setting";
import { setTimeZone, useTimeZone } from "@/lib/time-zone-setting";

/** The account menu: user, theme, time zone, logout. */
export function AccountMenu() {
  const session = useSession();
  const leave = useLogOut();

  return (
    <DropdownMenu
      trigger={
        <IconButton label="Account and settings">
          <CircleUserRound className="size-4.5" />
        </IconButton>
      }
    >
      <div className="px-2 py-1.5">
        <p className="max-w-56 truncate font-medium">{session.name}</p>
        <p className="text-xs text-muted">
          {session.role}
          {session.queues.length > 0 && `, limited to ${session.queues.join(", ")}`}
        </p>
      </div>
      <MenuSeparator />
      <MenuRadioGroup
        label="Theme"
        value={useTheme()}
        onChange={setTheme}
        options={[
          { value: "system", label: "System", icon: <Monitor className="size-3.5" /> },
          { value: "light", label: "Light", icon: <Sun className="size-3.5" /> },
          { value: "dark", label: "Dark", icon: <Moon className="size-3.5" /> },
        ]}
      />
      <MenuSeparator />
      <MenuRadioGroup
        label="Times in"
        value={useTimeZone()}
        onChange={setTimeZone}
        options={[
          { value: "local", label: "Local time" },
          { value: "utc", label: "UTC" },
        ]}
      />
      <MenuSeparator />
      {session.csrf !== null && (
        <MenuItem onSelect={() => void leave()}>
          <LogOut className="size-3.5" />
          Log out
        </MenuItem>
      )}
      <p className="px-2 py-1 text-xs text-muted">Rota {session.version}</p>
    </DropdownMenu>
  );
}
