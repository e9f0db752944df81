import { Check, Copy } from "lucide-react";
import { useState } from "react";

import { IconButton } from "@/components/button";
import { copyText } from "@/lib/clipboard";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <IconButton
      label={isCopied ? "Copied" : label}
      className="size-6"
      onClick={() => {
        void copyText(text).then(() => {
          setCopied(true);
          setTimeout(() => setCopied(false), 1500);
        });
      }}
    >
      {isCopied ? <Check className="size-3.5 text-completed" /> : <Copy className="size-3.5" />}
    </IconButton>
  );
}
