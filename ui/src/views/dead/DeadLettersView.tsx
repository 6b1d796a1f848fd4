export default function DeadLettersView() {
  return <h1>DeadLetters</h1>;
}
