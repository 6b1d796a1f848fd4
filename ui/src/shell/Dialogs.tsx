import { lazy, Suspense, useEffect } from "react";
import { closeDialog, type OpenDialog, useDialogs } from "./dialogState";

const loadPalette = () => import("./Palette");
const loadSteering = () => import("./SteeringDialogs");
const Palette = lazy(loadPalette);
const Steering = lazy(loadSteering);
const LOAD_AFTER_MS = 500;

/** Whatever is open over the view. It is loaded when the page has come to rest, or when it is first needed. */
export function Dialogs() {
  useEffect(() => {
    const timer = setTimeout(() => void Promise.allSettled([loadPalette(), loadSteering()]), LOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
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
