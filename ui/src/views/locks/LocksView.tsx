export default function LocksView() {
  return <h1>Locks</h1>;
}
