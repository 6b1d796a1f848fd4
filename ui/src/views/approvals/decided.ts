import type { ApprovalRecord } from "../../client/client";

/** Those that had been decided at that time, the last decision first. */
export function decidedBy(records: readonly ApprovalRecord[], at: number, state: string): ApprovalRecord[] {
  return records
    .filter((record) => record.state !== "pending" && (record.decidedAt ?? record.requestedAt) <= at)
    .filter((record) => state === "" || record.state === state)
    .sort((a, b) => (b.decidedAt ?? b.requestedAt) - (a.decidedAt ?? a.requestedAt));
}
