import { useRef } from "react";

/** An id that nothing else has. (`randomUUID` is only there on secure connections.) */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * An id for something that is made of this content: the same for as long as the content is, so that what is tried
 * again, without knowing whether it was done the first time, is done once.
 */
export function useIdOf(content: object): string {
  const text = JSON.stringify(content);
  const kept = useRef({ text, id: "" });
  if (kept.current.id === "" || kept.current.text !== text) kept.current = { text, id: newId() };
  return kept.current.id;
}
