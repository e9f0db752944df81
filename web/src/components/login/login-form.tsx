import { Eye, EyeOff } from "lucide-react";
import { useEffect, useState } from "react";

import { ApiError } from "@/api/http-client";
import { Button, IconButton } from "@/components/buttons";
import { TextField } from "@/components/form-fields";

interface LoginFormProps {
  isBusy: boolean;
  error: unknown;
  onSubmit: (token: string) => void;
}

/** The token field, with the server's error. */
export function LoginForm({ isBusy, error, onSubmit }: LoginFormProps) {
  const [token, setToken] = useState("");
  const [isShown, setShown] = useState(false);
  const left = useSecondsLeft(error);
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "" && left === 0) onSubmit(token.trim());
      }}
    >
      <div className="flex items-end gap-1">
        <TextField
          label="Token"
          type={isShown ? "text" : "password"}
          value={token}
          onChange={setToken}
          autoFocus
          autoComplete="current-password"
          spellCheck={false}
          className="flex-1"
          required
        />
        <IconButton label={isShown ? "Hide token" : "Show token"} onClick={() => setShown(!isShown)}>
          {isShown ? <EyeOff className="size-4" /> : <Eye className="size-4" />}
        </IconButton>
      </div>
      {error !== null && error !== undefined && (
        <p role="alert" className="text-failed">
          {words(error)}
        </p>
      )}
      <Button type="submit" variant="primary" isBusy={isBusy} disabled={token.trim() === "" || left > 0}>
        {left > 0 ? `Try again in ${left} s` : "Log in"}
      </Button>
    </form>
  );
}

function words(error: unknown): string {
  if (!(error instanceof ApiError)) return "The request failed.";
  if (error.status === 401) return "Unknown token, or it has expired or was revoked.";
  if (error.status === 429) return "Too many failed logins from this address.";
  return error.message;
}

/** Wait time from the server's Retry-After. */
function useSecondsLeft(error: unknown): number {
  const wait = error instanceof ApiError && error.status === 429 ? (error.retryAfterS ?? 60) : 0;
  const [spent, setSpent] = useState({ error, seconds: 0 });
  if (spent.error !== error) setSpent({ error, seconds: 0 });
  useEffect(() => {
    if (wait === 0) return;
    const timer = setInterval(() => setSpent((now) => ({ ...now, seconds: now.seconds + 1 })), 1000);
    return () => clearInterval(timer);
  }, [wait, error]);
  return Math.max(0, wait - spent.seconds);
}
