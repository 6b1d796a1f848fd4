import { BroadcastDialog } from "../steer/BroadcastDialog";
import { ForkDialog } from "../steer/ForkDialog";
import { NewAgentDialog } from "../steer/NewAgentDialog";
import { OutcomeDialog } from "../steer/OutcomeDialog";
import { SteerDialog } from "../steer/SteerDialog";
import { NewGroup } from "../views/chats/NewRoom";
import "../views/chats/chats.css";
import type { OpenDialog } from "./dialogState";
import { ShortcutsDialog } from "./ShortcutsDialog";

interface SteeringDialogsProps {
  open: Exclude<OpenDialog, { kind: "palette" }>;
  onClose: () => void;
}

export default function SteeringDialogs({ open, onClose }: SteeringDialogsProps) {
  switch (open.kind) {
    case "help":
      return <ShortcutsDialog onClose={onClose} />;
    case "broadcast":
      return <BroadcastDialog onClose={onClose} />;
    case "fork":
      return <ForkDialog onClose={onClose} {...(open.at === undefined ? {} : { at: open.at })} />;
    case "new-agent":
      return <NewAgentDialog onClose={onClose} {...(open.template ? { template: open.template } : {})} />;
    case "new-group":
      return <NewGroup onClose={onClose} />;
    case "outcome":
      return <OutcomeDialog outcome={open.outcome} onClose={onClose} />;
    case "steer":
      return <SteerDialog action={open.action} agentIds={open.agentIds} onClose={onClose} />;
  }
}
