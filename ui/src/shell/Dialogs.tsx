import { lazy, Suspense } from "react";
import { closeDialog, type OpenDialog, useDialogs } from "./dialogState";

const Palette = lazy(() => import("./Palette"));
const Steering = lazy(() => import("./SteeringDialogs"));

/** Whatever is open over the view. Each is loaded when it is first needed. */
export function Dialogs() {
  const open = useDialogs((state) => state.open);
  if (open === null) return null;
  return (
    <Suspense fallback={null}>
      <Opened open={open} />
    </Suspense>
  );
}

function Opened({ open }: { open: OpenDialog }) {
  if (open.kind === "palette") return <Palette onClose={closeDialog} />;
  return <Steering open={open} onClose={closeDialog} />;
}
