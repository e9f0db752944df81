/** Copies a text to the clipboard. */

import { Check, Copy } from "lucide-react";
import { useState } from "react";

import { IconButton } from "@/components/buttons";
import { copyToClipboard } from "@/lib/copy-to-clipboard";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <IconButton
      label={isCopied ? "Copied" : label}
      className="size-6"
      onClick={() => {
        void copyToClipboard(text).then(() => {
          setCopied(true);
          setTimeout(() => setCopied(false), 1500);
        });
      }}
    >
      {isCopied ? <Check className="size-3.5 text-completed" /> : <Copy className="size-3.5" />}
    </IconButton>
  );
}
