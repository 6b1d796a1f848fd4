import { useMemo } from "react";
import type { Room } from "../../projection/world";
import { useWorld } from "../../state/page";
import { Question } from "../questions/Question";

/** What those who are about to answer in a room want to know first. */
export function RoomQuestions({ room }: { room: Room }) {
  const questions = useWorld((world) => world.questions);
  const asked = useMemo(() => {
    const answering = new Set(room.answering.keys());
    return [...questions.values()].filter(({ taskId }) => answering.has(taskId.split("~")[0] ?? taskId));
  }, [questions, room.answering]);
  if (asked.length === 0) return null;
  return (
    <div className="chat-questions">
      {asked.map((question) => (
        <Question key={question.questionId} question={question} />
      ))}
    </div>
  );
}
