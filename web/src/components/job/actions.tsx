/** What may be done to a job: only what its state and the reader's role allow. */

import { Link } from "@tanstack/react-router";
import { Ban, CopyPlus, Ellipsis, FastForward, Pencil, RotateCcw } from "lucide-react";

import type { Job } from "@/api/job";
import { Button, IconButton } from "@/components/button";
import { Menu, MenuItem, MenuLine } from "@/components/menu";

export type JobDialog = "cancel" | "delete" | "edit" | "reschedule" | "priority";

interface JobActionsProps {
  job: Pick<Job, "status" | "actions" | "jobId" | "run">;
  mayOperate: boolean;
  isBusy: boolean;
  onRedrive: () => void;
  onRunNow: () => void;
  onAsk: (dialog: JobDialog) => void;
}

export function JobActions({ job, mayOperate, isBusy, onRedrive, onRunNow, onAsk }: JobActionsProps) {
  if (!mayOperate) return null;
  const may = (action: Job["actions"][number]) => job.actions.includes(action);
  const mayMove = may("update") && job.status !== "FAILED";
  return (
    <>
      {may("redrive") && (
        <>
          <Button look="primary" isBusy={isBusy} onClick={onRedrive}>
            <RotateCcw aria-hidden className="size-3.5" />
            Redrive
          </Button>
          <Button onClick={() => onAsk("edit")}>
            <Pencil aria-hidden className="size-3.5" />
            Edit and redrive
          </Button>
        </>
      )}
      {mayMove && job.status === "SCHEDULED" && (
        <Button look="primary" isBusy={isBusy} onClick={onRunNow}>
          <FastForward aria-hidden className="size-3.5" />
          Run now
        </Button>
      )}
      {may("cancel") && (
        <Button onClick={() => onAsk("cancel")}>
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
        <Menu
          trigger={
            <IconButton label="More actions">
              <Ellipsis className="size-4" />
            </IconButton>
          }
        >
          {mayMove && (
            <>
              <MenuItem onSelect={() => onAsk("reschedule")}>Reschedule…</MenuItem>
              <MenuItem onSelect={() => onAsk("priority")}>Change priority…</MenuItem>
              <MenuItem onSelect={() => onAsk("edit")}>Edit data…</MenuItem>
            </>
          )}
          {mayMove && may("delete") && <MenuLine />}
          {may("delete") && (
            <MenuItem isDangerous onSelect={() => onAsk("delete")}>
              Delete…
            </MenuItem>
          )}
        </Menu>
      )}
    </>
  );
}
