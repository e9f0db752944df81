import { Bookmark, BookmarkPlus, Trash2 } from "lucide-react";
import { useState } from "react";

import type { SavedView } from "@/api/saved-views";
import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { DropdownMenu, MenuItem, MenuSeparator } from "@/components/dropdown-menu";
import { TextField } from "@/components/form-fields";
import type { JobsSearch } from "@/routes/jobs.search-params";

interface SavedViewsMenuProps {
  views: readonly SavedView[];
  search: JobsSearch;
  onOpen: (view: SavedView) => void;
  /** Undefined if the user's role does not allow it. */
  onSave?: (name: string) => void;
  onDelete?: (name: string) => void;
}

/** The menu of saved views, which all users share. */
export function SavedViewsMenu({ views, search, onOpen, onSave, onDelete }: SavedViewsMenuProps) {
  const current = views.find((view) => isSameSearch(view.search, search))?.name ?? null;
  const [name, setName] = useState<string | null>(null);
  const keep = () => {
    if (name === null || name.trim() === "") return;
    onSave?.(name.trim());
    setName(null);
  };
  return (
    <>
      <DropdownMenu
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
        {views.length === 0 && !onSave && <p className="px-2 py-1.5 text-[13px] text-muted">No saved views</p>}
        {views.length > 0 && onSave && <MenuSeparator />}
        {onSave && (
          <MenuItem onSelect={() => setName(current ?? "")}>
            <BookmarkPlus className="size-3.5" />
            Save this view
          </MenuItem>
        )}
        {current !== null && onDelete && (
          <MenuItem isDangerous onSelect={() => onDelete(current)}>
            <Trash2 className="size-3.5" />
            Delete “{current}”
          </MenuItem>
        )}
      </DropdownMenu>
      <Dialog
        isOpen={name !== null}
        onClose={() => setName(null)}
        title="Save this view"
        description="Saves the filter and the order for all users. The URL of the page shares it, too."
        actions={
          <Button variant="primary" disabled={(name ?? "").trim() === ""} onClick={keep}>
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

function isSameSearch(one: JobsSearch, other: JobsSearch): boolean {
  const text = (search: JobsSearch) => JSON.stringify(Object.entries(search).sort());
  return text(one) === text(other);
}
