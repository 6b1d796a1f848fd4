// Made from the types of the server by `python -m ai_whisperer.protocol.typescript`. Do not edit.
// biome-ignore-all format: it is made

export const LIMITS: Readonly<Record<string, Readonly<Record<string, [string, string]>>>> = {
  "The session as a whole": {
    "max_started_agents": [
      "Started agents",
      "The start of another is refused."
    ],
    "max_created_agents": [
      "Created agents",
      "An agent that wants to create another is refused."
    ],
    "max_concurrent_loops": [
      "Loops at once",
      "Work waits in its queue."
    ],
    "max_requests_per_account": [
      "Requests to one account at once",
      "The request waits for its turn."
    ],
    "max_tokens": [
      "Tokens in all",
      "The agent that wants more is paused until you raise it."
    ],
    "max_cost_usd": [
      "Cost in all",
      "The agent that wants more is paused until you raise it."
    ]
  },
  "Work": {
    "max_concurrent_tasks": [
      "Tasks at once",
      "Work waits in the queue of the agent."
    ],
    "max_queue_length": [
      "Queue",
      "Work, mail and messages are refused for a while."
    ],
    "max_steps_per_task": [
      "Steps of a task",
      "The task fails."
    ],
    "max_same_calls": [
      "Equal calls in a row",
      "The call is not made; then the task fails."
    ],
    "max_continuations": [
      "Continuations",
      "The task fails."
    ],
    "max_task_seconds": [
      "Time of a task",
      "The task fails."
    ],
    "max_answer_seconds": [
      "Time of an answer",
      "The task fails."
    ],
    "max_retry_after_seconds": [
      "Wait that a provider asks for",
      "It is asked again after this time."
    ],
    "max_outage_seconds": [
      "Outage of a provider",
      "The request is no longer repeated, and the task fails."
    ],
    "max_switch_depth": [
      "Depth of switches",
      "The question to the next agent is refused."
    ],
    "switch_timeout_seconds": [
      "Wait for an answer",
      "The agent no longer waits."
    ],
    "max_tasks_per_tree": [
      "Tasks of a task tree",
      "Its agents can give each other no more work."
    ]
  },
  "Tokens and money": {
    "max_tokens_per_tree": [
      "Tokens of a task tree",
      "The task fails."
    ],
    "max_cost_usd_per_tree": [
      "Cost of a task tree",
      "The task fails."
    ],
    "max_tokens_per_agent": [
      "Tokens of an agent",
      "The agent that wants more is paused until you raise it."
    ],
    "max_cost_usd_per_agent": [
      "Cost of an agent",
      "The agent that wants more is paused until you raise it."
    ]
  },
  "Size": {
    "max_prompt_bytes": [
      "Prompt",
      "The prompt is refused."
    ],
    "max_mail_bytes": [
      "Mail",
      "The mail is refused."
    ],
    "max_result_bytes": [
      "Result of a tool",
      "The result is cut."
    ],
    "max_answer_bytes": [
      "Answer of a model",
      "The task fails."
    ],
    "max_context_bytes": [
      "Conversations in memory",
      "The task fails."
    ],
    "max_file_bytes": [
      "File",
      "The file is not read or written as a whole."
    ],
    "max_attachment_bytes": [
      "Attachment",
      "The task or the message is refused."
    ],
    "max_memory_index_bytes": [
      "Notes in the prompt",
      "The model is told the beginning, and that there is more."
    ]
  },
  "Tools": {
    "max_tool_seconds": [
      "Time of a tool",
      "The processes of the tool are ended."
    ],
    "max_tool_cpu_seconds": [
      "CPU time of a tool",
      "The processes of the tool are ended."
    ],
    "max_tool_memory_bytes": [
      "Memory of a tool",
      "Its process gets no more memory."
    ],
    "max_tool_processes": [
      "Processes of a tool",
      "It can start no more of them."
    ]
  }
};
export const MAY_BE_ZERO: readonly string[] = [
  "max_continuations",
  "max_started_agents",
  "max_created_agents"
];
