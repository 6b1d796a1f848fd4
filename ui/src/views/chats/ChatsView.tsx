export default function ChatsView() {
  return <h1>Chats</h1>;
}
