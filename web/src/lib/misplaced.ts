/** Which field of a form a refusal of the server's belongs to. */

import { ApiError } from "@/api/client";

/** Message by the path of the field: "delay", "data.address.street". What belongs nowhere is under "". */
export type Complaints = Readonly<Record<string, string>>;

const OF_DATA = /\bdata(?:\.|: )([\w.[\]-]+): (.+)$/;
const MISSING = /\bdata(?:\.([\w.[\]-]+))?: missing '([^']+)'/;
const OF_OPTION = /^([a-z_]+): (.+)$/;

export function placeComplaints(error: unknown, options: ReadonlySet<string>): Complaints {
  if (!(error instanceof ApiError)) return { "": error instanceof Error ? error.message : "That did not work" };
  const listed = error.errors.map(({ field, message }) => placed(field, message, options));
  if (listed.length > 0) return Object.fromEntries(listed.reverse());
  const missing = MISSING.exec(error.message);
  if (missing) return { [join("data", missing[1], missing[2])]: "is missing" };
  const ofData = OF_DATA.exec(error.message);
  if (ofData) return { [join("data", ofData[1])]: ofData[2] ?? "" };
  const ofOption = OF_OPTION.exec(error.message);
  if (ofOption?.[1] !== undefined && options.has(ofOption[1])) return { [ofOption[1]]: ofOption[2] ?? "" };
  return { "": error.message };
}

/** "tags.1" and "priority.constrained-int" belong to one field each. */
function placed(field: string, message: string, options: ReadonlySet<string>): readonly [string, string] {
  const first = field.split(".", 1)[0] ?? "";
  return options.has(first) ? [first, message] : ["", `${field}: ${message}`];
}

function join(...parts: (string | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined)
    .join(".")
    .replaceAll(/\[(\d+)\]/g, ".$1");
}
