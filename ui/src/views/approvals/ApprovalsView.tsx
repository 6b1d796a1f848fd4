export default function ApprovalsView() {
  return <h1>Approvals</h1>;
}
