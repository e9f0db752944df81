/** The frame of every page: navigation, header with search, live status and account menu. */

import { useQuery } from "@tanstack/react-query";
import { Outlet, useNavigate, useRouter } from "@tanstack/react-router";
import { Menu as MenuIcon, Plus, Search } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { lazy, Suspense, useEffect, useState } from "react";

import { ApiError } from "@/api/http-client";
import { sessionQuery, useHasRole } from "@/api/session";
import { IconButton } from "@/components/buttons";
import { LoadingState } from "@/components/loading-empty-error-states";
import { AccountMenu } from "@/components/shell/account-menu";
import { ConnectionLostBanner } from "@/components/shell/connection-lost-banner";
import { LiveStatus } from "@/components/shell/live-status";
import { Navigation } from "@/components/shell/navigation";
import { ShortcutKeys } from "@/components/shortcut-keys";
import { useKeyboardShortcuts } from "@/lib/use-keyboard-shortcuts";
import { LiveProvider } from "@/live/live-provider";

const loadCommandPalette = () => import("@/components/shell/command-palette");
const CommandPalette = lazy(loadCommandPalette);
/** The palette is loaded after the page. Text typed before it is there is kept. */
const PALETTE_MS = 1000;

export function AppShell() {
  return (
    <LiveProvider>
      <Frame />
    </LiveProvider>
  );
}

/** An expired session leads to the login page, and from there back to the current page. */
function useSessionEnd(): void {
  const { error } = useQuery(sessionQuery);
  const router = useRouter();
  const hasEnded = error instanceof ApiError && error.status === 401;
  useEffect(() => {
    if (hasEnded) void router.navigate({ to: "/login", search: { next: router.state.location.href } });
  }, [hasEnded, router]);
}

function Frame() {
  useSessionEnd();
  const [palette, setPalette] = useState<"jump" | "keys" | null>(null);
  const [typed, setTyped] = useState("");
  const [isMenuOpen, setMenuOpen] = useState(false);
  const mayEnqueue = useHasRole("operator");
  const navigate = useNavigate();
  useEffect(() => {
    const timer = setTimeout(() => void loadCommandPalette().catch(() => undefined), PALETTE_MS);
    return () => clearTimeout(timer);
  }, []);

  const closePalette = () => {
    setPalette(null);
    setTyped("");
  };

  useKeyboardShortcuts({
    "mod+k": () => setPalette("jump"),
    "/": () => setPalette("jump"),
    "?": () => setPalette("keys"),
    n: () => mayEnqueue && void navigate({ to: "/jobs/new" }),
    "g c": () => void navigate({ to: "/scaling" }),
    "g o": () => void navigate({ to: "/" }),
    "g j": () => void navigate({ to: "/jobs" }),
    "g w": () => void navigate({ to: "/workflows" }),
    "g d": () => void navigate({ to: "/dead" }),
    "g q": () => void navigate({ to: "/queues" }),
    "g k": () => void navigate({ to: "/workers" }),
    "g s": () => void navigate({ to: "/schedules" }),
    "g l": () => void navigate({ to: "/locks" }),
    "g p": () => void navigate({ to: "/operations" }),
    "g t": () => void navigate({ to: "/tokens" }),
    "g a": () => void navigate({ to: "/audit" }),
  });

  return (
    <div className="flex min-h-dvh">
      <a
        href="#content"
        className="sr-only z-50 rounded bg-accent px-3 py-2 text-accent-text focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        Skip to content
      </a>
      <aside className="sticky top-0 hidden h-dvh w-52 shrink-0 border-r bg-surface md:block">
        <Navigation />
      </aside>
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="sticky top-0 z-30 flex h-12 items-center gap-2 border-b bg-surface px-3 md:px-6">
          <PhoneMenu isOpen={isMenuOpen} setOpen={setMenuOpen} />
          <button
            type="button"
            onClick={() => setPalette("jump")}
            className="flex h-8 min-w-0 flex-1 items-center gap-2 rounded-md border border-line-strong/50 bg-bg px-2.5 text-[13px] text-muted hover:text-text md:max-w-sm"
          >
            <Search aria-hidden className="size-3.5 shrink-0" />
            <span className="flex-1 truncate text-left">Go to a job or page</span>
            <span className="hidden md:inline">
              <ShortcutKeys keys="mod+k" />
            </span>
          </button>
          <div className="ml-auto flex items-center gap-1">
            <LiveStatus />
            {mayEnqueue && (
              <IconButton label="New job" onClick={() => void navigate({ to: "/jobs/new" })}>
                <Plus className="size-4" />
              </IconButton>
            )}
            <AccountMenu />
          </div>
        </header>
        <ConnectionLostBanner />
        <main id="content" tabIndex={-1} className="min-w-0 flex-1 outline-none">
          <Suspense fallback={<LoadingState />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      {palette !== null && (
        <Suspense fallback={<LoadingPalette typed={typed} onType={setTyped} onClose={closePalette} />}>
          <CommandPalette areKeysOpen={palette === "keys"} typed={typed} onType={setTyped} onClose={closePalette} />
        </Suspense>
      )}
    </div>
  );
}

interface LoadingPaletteProps {
  typed: string;
  onType: (text: string) => void;
  onClose: () => void;
}

/** The input of the command palette while its code is loading: no keystroke is lost. */
function LoadingPalette({ typed, onType, onClose }: LoadingPaletteProps) {
  return (
    <input
      aria-label="Go to a job or page"
      autoFocus
      value={typed}
      onChange={(event) => onType(event.target.value)}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
      className="fixed top-[10vh] left-1/2 z-50 h-11 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 rounded-lg border bg-raised px-4 shadow-pop outline-none"
    />
  );
}

function PhoneMenu({ isOpen, setOpen }: { isOpen: boolean; setOpen: (isOpen: boolean) => void }) {
  useEffect(() => {
    // In landscape the navigation is at the side again.
    const wide = window.matchMedia("(min-width: 768px)");
    const close = () => wide.matches && setOpen(false);
    wide.addEventListener("change", close);
    return () => wide.removeEventListener("change", close);
  }, [setOpen]);
  return (
    <Radix.Root open={isOpen} onOpenChange={setOpen}>
      <Radix.Trigger asChild>
        <IconButton label="Open navigation" className="md:hidden">
          <MenuIcon className="size-5" />
        </IconButton>
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[#000]/50" />
        <Radix.Content aria-describedby={undefined} className="fixed inset-y-0 left-0 z-50 w-64 border-r bg-surface">
          <Radix.Title className="sr-only">Navigation</Radix.Title>
          <Navigation onChosen={() => setOpen(false)} />
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
