/** Renders the parts of a text between backticks as code. */
export function TextWithInlineCode({ text }: { text: string }) {
  return text.split("`").map((piece, place) =>
    place % 2 === 1 ? (
      <code key={place} className="rounded-sm bg-sunken px-1 font-mono text-[0.9em] text-text">
        {piece}
      </code>
    ) : (
      piece
    ),
  );
}
