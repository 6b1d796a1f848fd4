import { useCallback, useEffect, useRef, useState } from "react";
import { useSelection } from "../../shell/addresses";
import { read, type Shared, written } from "./scale";

const WRITE_MS = 300;

/** The range that somebody has chosen, which is in the address; null while nobody has. */
export function useShared(): [Shared | null, (range: Shared | null) => void] {
  const [text, setText] = useSelection("range");
  const [chosen, setChosen] = useState(() => read(text));
  const last = useRef(text);
  useEffect(() => {
    if (text === last.current) return;
    last.current = text;
    setChosen(read(text));
  }, [text]);
  const isMoved = useRef(false);
  useEffect(() => {
    if (!isMoved.current) return;
    const timer = setTimeout(() => {
      last.current = chosen === null ? "" : written(chosen);
      setText(last.current);
    }, WRITE_MS);
    return () => clearTimeout(timer);
  }, [chosen, setText]);
  const choose = useCallback((range: Shared | null) => {
    isMoved.current = true;
    setChosen(range);
  }, []);
  return [chosen, choose];
}
