import { Bookmark, BookmarkPlus, Trash2 } from "lucide-react";
import { useState } from "react";

import { Button } from "@/components/button";
import { Dialog } from "@/components/dialog";
import { TextField } from "@/components/field";
import { Menu, MenuItem, MenuLine } from "@/components/menu";
import type { View } from "@/lib/views";

interface ViewsMenuProps {
  views: readonly View[];
  /** The view that is shown now, if it is one of them. */
  current: string | null;
  onOpen: (view: View) => void;
  onKeep: (name: string) => void;
  onDrop: (name: string) => void;
}

/** Filters with a name. */
export function ViewsMenu({ views, current, onOpen, onKeep, onDrop }: ViewsMenuProps) {
  const [name, setName] = useState<string | null>(null);
  const keep = () => {
    if (name === null || name.trim() === "") return;
    onKeep(name.trim());
    setName(null);
  };
  return (
    <>
      <Menu
        trigger={
          <Button>
            <Bookmark className="size-3.5" />
            <span className="max-w-40 truncate">{current ?? "Views"}</span>
          </Button>
        }
      >
        {views.map((view) => (
          <MenuItem key={view.name} onSelect={() => onOpen(view)}>
            <Bookmark className="size-3.5" />
            <span className="max-w-56 truncate">{view.name}</span>
          </MenuItem>
        ))}
        {views.length > 0 && <MenuLine />}
        <MenuItem onSelect={() => setName(current ?? "")}>
          <BookmarkPlus className="size-3.5" />
          Save this view
        </MenuItem>
        {current !== null && (
          <MenuItem isDangerous onSelect={() => onDrop(current)}>
            <Trash2 className="size-3.5" />
            Forget “{current}”
          </MenuItem>
        )}
      </Menu>
      <Dialog
        isOpen={name !== null}
        onClose={() => setName(null)}
        title="Save this view"
        description="The filter and the order, under a name, in this browser."
        actions={
          <Button look="primary" disabled={(name ?? "").trim() === ""} onClick={keep}>
            Save
          </Button>
        }
      >
        <TextField
          label="Name"
          value={name ?? ""}
          maxLength={60}
          autoFocus
          onChange={setName}
          onKeyDown={(event) => {
            if (event.key === "Enter") keep();
          }}
        />
      </Dialog>
    </>
  );
}
