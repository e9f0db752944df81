import { Link, type LinkProps } from "@tanstack/react-router";
import {
  CalendarClock,
  Gauge,
  KeyRound,
  Layers,
  LayoutList,
  ListChecks,
  Lock,
  Scaling,
  ScrollText,
  Server,
  Skull,
  Workflow,
  type LucideIcon,
} from "lucide-react";

import { useHasRole } from "@/api/session";

interface NavigationItem {
  readonly to: NonNullable<LinkProps["to"]>;
  readonly label: string;
  readonly icon: LucideIcon;
  /** The key after "g". */
  readonly key: string;
  readonly isForAdmins?: boolean;
}

/** The pages of the navigation, in groups. */
export const NAVIGATION: readonly { readonly title: string; readonly places: readonly NavigationItem[] }[] = [
  {
    title: "Work",
    places: [
      { to: "/", label: "Overview", icon: Gauge, key: "o" },
      { to: "/jobs", label: "Jobs", icon: ListChecks, key: "j" },
      { to: "/workflows", label: "Workflows", icon: Workflow, key: "w" },
      { to: "/dead", label: "Dead letters", icon: Skull, key: "d" },
      { to: "/schedules", label: "Schedules", icon: CalendarClock, key: "s" },
    ],
  },
  {
    title: "Capacity",
    places: [
      { to: "/queues", label: "Queues", icon: LayoutList, key: "q" },
      { to: "/workers", label: "Workers", icon: Server, key: "k" },
      { to: "/scaling", label: "Scaling", icon: Scaling, key: "c" },
      { to: "/locks", label: "Locks", icon: Lock, key: "l" },
    ],
  },
  {
    title: "Control",
    places: [
      { to: "/operations", label: "Operations", icon: Layers, key: "p" },
      { to: "/tokens", label: "Tokens", icon: KeyRound, key: "t", isForAdmins: true },
      { to: "/audit", label: "Audit", icon: ScrollText, key: "a", isForAdmins: true },
    ],
  },
];

export function Navigation({ onChosen }: { onChosen?: () => void }) {
  const isAdmin = useHasRole("admin");
  return (
    <nav aria-label="Pages" className="flex h-full flex-col gap-5 overflow-y-auto p-3">
      <Link
        to="/"
        onClick={onChosen}
        className="flex items-center gap-2 px-2 pt-1 text-base font-semibold tracking-tight"
      >
        <Logo />
        Rota
      </Link>
      {NAVIGATION.map(({ title, places }) => {
        const open = places.filter((place) => isAdmin || !place.isForAdmins);
        return (
          open.length > 0 && (
            <div key={title}>
              <h2 className="px-2 pb-1 text-xs text-muted">{title}</h2>
              <ul className="flex flex-col gap-0.5">
                {open.map(({ to, label, icon: Icon }) => (
                  <li key={to}>
                    <Link
                      to={to}
                      onClick={onChosen}
                      activeOptions={{ exact: to === "/", includeSearch: false }}
                      className="flex items-center gap-2.5 rounded-md px-2 py-1.5 text-[13px] text-muted hover:bg-sunken hover:text-text data-[status=active]:bg-accent-soft data-[status=active]:font-medium data-[status=active]:text-text"
                    >
                      <Icon aria-hidden className="size-4" strokeWidth={1.75} />
                      {label}
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          )
        );
      })}
    </nav>
  );
}

function Logo() {
  return (
    <svg aria-hidden viewBox="0 0 32 32" className="size-6">
      <rect width="32" height="32" rx="7" className="fill-accent" />
      <g className="stroke-accent-text" strokeWidth="3" strokeLinecap="round">
        <path d="M8 10h9" />
        <path d="M8 16h16" opacity=".8" />
        <path d="M8 22h7" opacity=".6" />
      </g>
      <circle cx="23" cy="10" r="2.4" className="fill-accent-text" />
    </svg>
  );
}
