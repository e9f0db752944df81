import { Eye, EyeOff } from "lucide-react";
import { useEffect, useState } from "react";

import { ApiError } from "@/api/client";
import { Button, IconButton } from "@/components/button";
import { TextField } from "@/components/field";

interface LoginFormProps {
  isBusy: boolean;
  error: unknown;
  onSubmit: (token: string) => void;
}

/** One field. What went wrong is said as it is. */
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
        <IconButton label={isShown ? "Hide the token" : "Show the token"} onClick={() => setShown(!isShown)}>
          {isShown ? <EyeOff className="size-4" /> : <Eye className="size-4" />}
        </IconButton>
      </div>
      {error !== null && error !== undefined && (
        <p role="alert" className="text-failed">
          {words(error)}
        </p>
      )}
      <Button type="submit" look="primary" isBusy={isBusy} disabled={token.trim() === "" || left > 0}>
        {left > 0 ? `Try again in ${left} s` : "Log in"}
      </Button>
    </form>
  );
}

function words(error: unknown): string {
  if (!(error instanceof ApiError)) return "That did not work.";
  if (error.status === 401) return "This token is not known, or it has expired or was revoked.";
  if (error.status === 429) return "Too many failed logins from this address.";
  return error.message;
}

/** How long the server wants to be left alone. */
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
