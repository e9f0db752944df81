import { Bookmark, BookmarkPlus, Trash2 } from "lucide-react";
import { useState } from "react";

import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { DropdownMenu, MenuItem, MenuSeparator } from "@/components/dropdown-menu";
import { TextField } from "@/components/form-fields";
import { useToast } from "@/components/toasts";
import { deleteView, loadViews, saveView, type SavedView } from "@/lib/saved-views-storage";
import type { JobsSearch } from "@/routes/jobs.search-params";

/** The menu of saved views, stored in this browser. */
export function SavedViewsMenu({ search, onShow }: { search: JobsSearch; onShow: (search: JobsSearch) => void }) {
  const [views, setViews] = useState(loadViews);
  const toast = useToast();
  const current = views.find((view) => isSameSearch(view.search, search))?.name ?? null;
  return (
    <MenuAndDialog
      views={views}
      current={current}
      onOpen={(view) => onShow(view.search)}
      onSave={(name) => {
        setViews(saveView({ name, search }));
        toast.success(`Saved as “${name}”`);
      }}
      onDelete={(name) => setViews(deleteView(name))}
    />
  );
}

interface MenuAndDialogProps {
  views: readonly SavedView[];
  /** The name of the current view, if it is saved. */
  current: string | null;
  onOpen: (view: SavedView) => void;
  onSave: (name: string) => void;
  onDelete: (name: string) => void;
}

function MenuAndDialog({ views, current, onOpen, onSave, onDelete }: MenuAndDialogProps) {
  const [name, setName] = useState<string | null>(null);
  const keep = () => {
    if (name === null || name.trim() === "") return;
    onSave(name.trim());
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
        {views.length > 0 && <MenuSeparator />}
        <MenuItem onSelect={() => setName(current ?? "")}>
          <BookmarkPlus className="size-3.5" />
          Save this view
        </MenuItem>
        {current !== null && (
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
        description="Saves the filter and the order in this browser."
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
