import { useEffect } from "react";
import { notify } from "../state/actions";
import { listen, usePage } from "../state/page";

/** Tell the person of a question when an agent asks it, wherever on the page they are. */
export function useAsked(): void {
  useEffect(
    () =>
      listen((notes) => {
        const { live: world, playhead } = usePage.getState();
        if (playhead !== null) return;
        for (const { name, params } of notes) {
          if (name !== "question.asked" || !world.questions.has(params.questionId)) continue; // it is answered already
          notify(`${world.agents.get(params.agentId)?.name || params.agentId} asks you: ${params.question}`);
        }
      }),
    [],
  );
}
