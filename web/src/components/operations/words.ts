/** What an operation is called before, while and after it happens; and which states allow it. */

import type { Action } from "@/api/operations";
import type { JobState } from "@/lib/states";

interface Words {
  /** On a button. */
  readonly verb: string;
  /** "Cancelling 3 of 12". */
  readonly doing: string;
  /** "12 jobs cancelled". */
  readonly done: string;
  /** What it means, in a sentence. */
  readonly meaning: string;
  readonly isDangerous: boolean;
  readonly states: readonly JobState[];
}

const WAITING: readonly JobState[] = ["SCHEDULED", "BLOCKED", "PENDING"];
const EVERY: readonly JobState[] = [...WAITING, "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"];

export const ACTIONS: Readonly<Record<Action, Words>> = {
  cancel: {
    verb: "Cancel",
    doing: "Cancelling",
    done: "cancelled",
    meaning: "What waits never runs; handlers at work are told to stop.",
    isDangerous: true,
    states: [...WAITING, "PROCESSING"],
  },
  redrive: {
    verb: "Redrive",
    doing: "Redriving",
    done: "redriven",
    meaning: "Each gets another life, with its counts reset.",
    isDangerous: false,
    states: ["FAILED"],
  },
  update: {
    verb: "Change",
    doing: "Changing",
    done: "changed",
    meaning: "Only jobs that wait can be changed.",
    isDangerous: false,
    states: WAITING,
  },
  delete: {
    verb: "Delete",
    doing: "Deleting",
    done: "deleted",
    meaning: "Every trace is removed. This cannot be undone.",
    isDangerous: true,
    states: EVERY,
  },
};
