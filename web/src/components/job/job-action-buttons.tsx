/** The buttons of the job actions that the state and the user's role allow. */

import { Link } from "@tanstack/react-router";
import { Ban, CopyPlus, Ellipsis, FastForward, Pencil, RotateCcw } from "lucide-react";

import type { Job } from "@/api/job-detail";
import { Button, IconButton } from "@/components/buttons";
import { DropdownMenu, MenuItem, MenuSeparator } from "@/components/dropdown-menu";

export type JobDialog = "cancel" | "delete" | "edit" | "reschedule" | "priority";

interface JobActionButtonsProps {
  job: Pick<Job, "status" | "actions" | "jobId" | "run">;
  mayOperate: boolean;
  isBusy: boolean;
  onRedrive: () => void;
  onRunNow: () => void;
  onOpenDialog: (dialog: JobDialog) => void;
}

export function JobActionButtons({
  job,
  mayOperate,
  isBusy,
  onRedrive,
  onRunNow,
  onOpenDialog,
}: JobActionButtonsProps) {
  if (!mayOperate) return null;
  const may = (action: Job["actions"][number]) => job.actions.includes(action);
  const mayMove = may("update") && job.status !== "FAILED";
  return (
    <>
      {may("redrive") && (
        <>
          <Button variant="primary" isBusy={isBusy} onClick={onRedrive}>
            <RotateCcw aria-hidden className="size-3.5" />
            Redrive
          </Button>
          <Button onClick={() => onOpenDialog("edit")}>
            <Pencil aria-hidden className="size-3.5" />
            Edit and redrive
          </Button>
        </>
      )}
      {mayMove && job.status === "SCHEDULED" && (
        <Button variant="primary" isBusy={isBusy} onClick={onRunNow}>
          <FastForward aria-hidden className="size-3.5" />
          Run now
        </Button>
      )}
      {may("cancel") && (
        <Button onClick={() => onOpenDialog("cancel")}>
          <Ban aria-hidden className="size-3.5" />
          Cancel
        </Button>
      )}
      <Button asChild>
        <Link to="/jobs/new" search={{ from: `${job.jobId}@${job.run}` }}>
          <CopyPlus aria-hidden className="size-3.5" />
          Enqueue a copy
        </Link>
      </Button>
      {(mayMove || may("delete")) && (
        <DropdownMenu
          trigger={
            <IconButton label="More actions">
              <Ellipsis className="size-4" />
            </IconButton>
          }
        >
          {mayMove && (
            <>
              <MenuItem onSelect={() => onOpenDialog("reschedule")}>Reschedule…</MenuItem>
              <MenuItem onSelect={() => onOpenDialog("priority")}>Change priority…</MenuItem>
              <MenuItem onSelect={() => onOpenDialog("edit")}>Edit data…</MenuItem>
            </>
          )}
          {mayMove && may("delete") && <MenuSeparator />}
          {may("delete") && (
            <MenuItem isDangerous onSelect={() => onOpenDialog("delete")}>
              Delete…
            </MenuItem>
          )}
        </DropdownMenu>
      )}
    </>
  );
}
