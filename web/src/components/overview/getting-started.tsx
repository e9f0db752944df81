import { CopyButton } from "@/components/copy-button";
import { Panel } from "@/components/panel";

const PROGRAM = `from rota import Rota

rota = Rota()


@rota.task
def greet(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    greet.enqueue_sync("world")
`;

const STEPS = [
  { title: "Write a task", file: "quickstart.py", code: PROGRAM },
  { title: "Start a worker", file: "in a terminal", code: "rota worker quickstart:rota" },
  { title: "Enqueue the job", file: "in another terminal", code: "python quickstart.py" },
] as const;

/** Shown until the first job is enqueued: how to enqueue one. */
export function GettingStarted() {
  return (
    <div className="mx-auto flex w-full max-w-2xl flex-col gap-4">
      <p className="text-muted">
        No jobs have been enqueued yet. This page is connected and shows the overview once the first job arrives.
      </p>
      <ol className="flex flex-col gap-4">
        {STEPS.map((step, index) => (
          <li key={step.title}>
            <Panel
              title={`${index + 1}. ${step.title}`}
              actions={
                <>
                  <span className="text-xs text-muted">{step.file}</span>
                  <CopyButton text={step.code} label={`Copy step ${index + 1}`} />
                </>
              }
            >
              <pre className="overflow-x-auto font-mono text-[13px] leading-relaxed" tabIndex={0}>
                {step.code.trimEnd()}
              </pre>
            </Panel>
          </li>
        ))}
      </ol>
      <p role="status" className="flex items-center gap-2 text-muted">
        <span aria-hidden className="size-2 animate-[breathe_1.6s_ease-in-out_infinite] rounded-full bg-accent" />
        Waiting for the first job
      </p>
    </div>
  );
}
