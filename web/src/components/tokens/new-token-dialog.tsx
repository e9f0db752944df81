import { useState } from "react";

import type { ApiToken, NewToken } from "@/api/api-tokens";
import { Button } from "@/components/buttons";
import { CopyButton } from "@/components/copy-button";
import { Dialog } from "@/components/dialog";
import { SelectField, TextField } from "@/components/form-fields";

const DAY_S = 86_400;
const ROLES = [
  { value: "viewer", label: "viewer: reads everything, changes nothing" },
  { value: "operator", label: "operator: enqueues, cancels, redrives, pauses" },
  { value: "admin", label: "admin: also purges, deletes many, manages tokens" },
] as const;
const EXPIRIES = [
  { value: String(DAY_S), label: "1 day" },
  { value: String(7 * DAY_S), label: "1 week" },
  { value: String(30 * DAY_S), label: "30 days" },
  { value: String(365 * DAY_S), label: "1 year" },
  { value: "", label: "never" },
];

interface NewTokenDialogProps {
  isBusy: boolean;
  error: unknown;
  /** The secret of the token that was just created. */
  secret: string | null;
  onCreate: (token: NewToken) => void;
  onClose: () => void;
}

/** Creates a token: a form, then its secret, which is shown once. */
export function NewTokenDialog({ isBusy, error, secret, onCreate, onClose }: NewTokenDialogProps) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<ApiToken["role"]>("viewer");
  const [expires, setExpires] = useState(String(30 * DAY_S));
  const [queues, setQueues] = useState("");
  if (secret !== null) {
    return (
      <Dialog
        isOpen
        onClose={onClose}
        title="Token created"
        description="Copy it now: only its hash is stored, so it cannot be shown again."
        actions={
          <Button variant="primary" onClick={onClose}>
            Done
          </Button>
        }
      >
        <p className="flex items-center gap-2 rounded-md bg-sunken px-3 py-2">
          <code aria-label="New token" className="min-w-0 flex-1 text-xs break-all">
            {secret}
          </code>
          <CopyButton text={secret} label="Copy token" />
        </p>
      </Dialog>
    );
  }
  const names = queues
    .split(/[\s,]+/)
    .map((one) => one.trim())
    .filter((one) => one !== "");
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title="New token"
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            isBusy={isBusy}
            disabled={name.trim() === ""}
            onClick={() =>
              onCreate({
                role,
                name: name.trim(),
                ...(names.length > 0 ? { queues: names } : {}),
                ...(expires === "" ? {} : { expires_s: Number(expires) }),
              })
            }
          >
            Create
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <TextField
          label="Name"
          hint="Appears in the audit log: the person or the program that uses it."
          value={name}
          maxLength={100}
          onChange={setName}
        />
        <SelectField label="Role" value={role} onChange={setRole} options={ROLES} />
        <SelectField label="Expires after" value={expires} onChange={setExpires} options={EXPIRIES} />
        <TextField
          label="Queues"
          hint="Separated by commas. Empty: all queues."
          value={queues}
          spellCheck={false}
          onChange={setQueues}
        />
      </div>
      {error !== null && error !== undefined && (
        <p role="alert" className="mt-2 text-failed">
          {error instanceof Error ? error.message : "The request failed"}
        </p>
      )}
    </Dialog>
  );
}
