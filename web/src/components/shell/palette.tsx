import { Command } from "cmdk";

export default function Palette({ onClose }: { onClose: () => void }) {
  return (
    <Command.Dialog open onOpenChange={(open) => !open && onClose()} label="Jump to a job or page">
      <Command.Input />
    </Command.Dialog>
  );
}
