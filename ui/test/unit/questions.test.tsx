import { cleanup, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, test } from "vitest";
import type { QuestionRecord } from "../../src/client/client";
import { RpcError } from "../../src/client/errors";
import { answerIn, emptyForm, fieldsOf } from "../../src/views/questions/form";
import QuestionsView from "../../src/views/questions/QuestionsView";
import { note, renderAt, setStage } from "./stage";

afterEach(cleanup);

const SCHEMA = {
  type: "object",
  properties: {
    city: { type: "string", title: "Which city", description: "Any will do" },
    days: { type: "integer", minimum: 1 },
    by_train: { type: "boolean" },
    class: { enum: ["first", 2] },
    meals: { type: "array", items: { enum: ["breakfast", "dinner"] } },
  },
  required: ["city", "days"],
};
const RECORD: QuestionRecord = {
  sessionId: "default",
  questionId: "task1.2",
  agentId: "ann",
  taskId: "task1",
  question: "Where do you want to go?",
  schema: SCHEMA,
  state: "pending",
  askedAt: 1_000,
  deadlineAt: null,
  decidedAt: null,
  decidedBy: null,
  answer: null,
  reason: "",
};

function stage(answer: () => QuestionRecord = () => ({ ...RECORD, state: "answered" })) {
  const asked = { agentId: "ann", taskId: "task1", questionId: "task1.2", question: "Where do you", deadlineAt: null };
  return setStage(
    [note("agent.created", { agentId: "ann", name: "Ann", description: "" }), note("question.asked", asked)],
    {
      "question.list": () => ({ questions: [RECORD] }),
      "question.get": () => RECORD,
      "question.answer": answer,
      "question.refuse": () => ({ ...RECORD, state: "refused" }),
    },
  );
}

const sent = (calls: { method: string; params: Record<string, unknown> }[]) =>
  calls.filter(({ method }) => method === "question.answer" || method === "question.refuse");

test("a question is answered in the form that its schema makes", async () => {
  const { calls } = stage();
  renderAt("/s/default/questions", <QuestionsView />);
  await userEvent.type(await screen.findByLabelText(/Which city/), "Rome");
  await userEvent.type(screen.getByLabelText("days"), "3");
  await userEvent.selectOptions(screen.getByLabelText("by_train (if you like)"), "Yes");
  await userEvent.selectOptions(screen.getByLabelText("class (if you like)"), "2");
  await userEvent.click(screen.getByLabelText("dinner"));
  await userEvent.click(screen.getByRole("button", { name: "Answer" }));
  const answer = { city: "Rome", days: 3, by_train: true, class: 2, meals: ["dinner"] };
  expect(sent(calls)).toEqual([
    { method: "question.answer", params: { sessionId: "default", questionId: "task1.2", answer } },
  ]);
});

test("what does not fit is told at its field, and all that was typed stays", async () => {
  stage(() => {
    throw new RpcError(-32602, "The answer does not fit: …", { code: "answer_misfit", fields: { days: "must be 1" } });
  });
  renderAt("/s/default/questions", <QuestionsView />);
  await userEvent.type(await screen.findByLabelText(/Which city/), "Rome");
  await userEvent.click(screen.getByRole("button", { name: "Answer" }));
  expect(await screen.findByText("It must be 1.")).toBeTruthy();
  expect(screen.getByLabelText(/days/).getAttribute("aria-invalid")).toBe("true");
  expect((screen.getByLabelText(/Which city/) as HTMLTextAreaElement).value).toBe("Rome");
});

test("a question is refused with a reason", async () => {
  const { calls } = stage();
  renderAt("/s/default/questions", <QuestionsView />);
  await userEvent.type(await screen.findByLabelText("Reason for not answering"), "I stay");
  await userEvent.click(screen.getByRole("button", { name: "Do not answer" }));
  expect(sent(calls)).toEqual([
    { method: "question.refuse", params: { sessionId: "default", questionId: "task1.2", reason: "I stay" } },
  ]);
});

describe("a form", () => {
  const fields = fieldsOf(SCHEMA);

  test("leaves out what was left empty, and keeps what is no number for the server to refuse", () => {
    const filled = new Map(emptyForm(fields)).set("city", "Rome").set("days", "many");
    expect(answerIn(fields, filled)).toEqual({ city: "Rome", days: "many" });
  });

  test("leaves out a text that has to be there and is empty: nobody answers with nothing by mistake", () => {
    expect(answerIn(fields, new Map(emptyForm(fields)).set("city", " ").set("days", "3"))).toEqual({ days: 3 });
  });

  test("takes a default of null for none", () => {
    const empty = fieldsOf({
      properties: {
        sure: { type: "boolean", default: null },
        one: { enum: ["a"], default: null },
        some: { type: "array", items: { enum: ["a"] }, default: null },
      },
    });
    expect(answerIn(empty, emptyForm(empty))).toEqual({});
    expect(empty.map(({ first }) => first)).toEqual(["", "", []]);
  });

  test("has fields of any name", () => {
    const odd = fieldsOf(JSON.parse('{"properties": {"__proto__": {"type": "string"}, "": {"type": "integer"}}}'));
    const answer = answerIn(odd, new Map([["__proto__", "Rome"] as const, ["", "3"] as const]));
    expect(JSON.stringify(answer)).toBe('{"__proto__":"Rome","":3}');
  });

  test("begins with the defaults", () => {
    const [city, meals] = fieldsOf({
      properties: {
        city: { type: "string", default: "Rome" },
        meals: { type: "array", items: { enum: ["a", "b"] }, default: ["b"] },
      },
    });
    expect([city?.first, meals?.first]).toEqual(["Rome", [1]]);
  });
});
