import { usePage } from "../state/page";

/** Says that no AI answers here, while the server's model is the one that plays fixed answers. */
export function ModelBadge() {
  const model = usePage((page) => page.server?.model ?? "");
  if (model !== "scripted" && !model.startsWith("scripted:")) return null;
  return (
    <span
      className="model-badge"
      title={`The server's model is ${model}, which gives fixed answers. Start the server with the key of a provider, or with --model, for a real one.`}
    >
      scripted model: no AI answers here
    </span>
  );
}
