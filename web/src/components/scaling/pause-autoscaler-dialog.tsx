import { ConfirmDialog } from "@/components/confirm-dialog";

interface PauseAutoscalerDialogProps {
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onConfirm: () => void;
}

export function PauseAutoscalerDialog({ isBusy, error, onClose, onConfirm }: PauseAutoscalerDialogProps) {
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title="Pause the autoscaler?"
      verb="Pause"
      isBusy={isBusy}
      error={error}
      onConfirm={onConfirm}
    >
      It launches and drains no worker until it is resumed, also after a restart. It still observes and decides, and
      removes machines that have already drained.
    </ConfirmDialog>
  );
}
