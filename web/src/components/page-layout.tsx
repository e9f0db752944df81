import { useEffect, type ReactNode } from "react";

interface PageProps {
  title: string;
  /** Next to the title: a badge, an ID. */
  beside?: ReactNode;
  /** A line below the title. */
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** The layout of a page: title, actions and content. Also sets the document title. */
export function PageLayout({ title, beside, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Rota`;
  }, [title]);
  return (
    <div className="mx-auto flex w-full max-w-[1400px] flex-col gap-4 px-4 py-5 md:px-6">
      <header className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <div className="min-w-0">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <h1 className="text-xl font-semibold tracking-tight break-all">{title}</h1>
            {beside}
          </div>
          {lead !== undefined && <div className="mt-0.5 text-muted">{lead}</div>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
