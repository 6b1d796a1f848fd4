import pytest

from ai_whisperer.core.addresses import AddressBook, check_agent_id
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import DuplicateIdError, InvalidInputError, UnknownAgentError, UnknownRecipientError

DEBBIE = AgentDefinition(name="Debbie the Debugger", aliases=("d",))


def book() -> AddressBook:
    made = AddressBook()
    made.add("debbie", DEBBIE)
    made.add("alice", AgentDefinition())
    return made


@pytest.mark.parametrize("name", ["debbie", "Debbie", " DEBBIE ", "debbie the debugger", "debbie_the-Debugger", "D"])
def test_case_spacing_and_aliases_do_not_matter(name: str) -> None:
    assert book().resolve(name) == "debbie"


def test_an_unknown_recipient_is_answered_with_the_valid_names() -> None:
    with pytest.raises(UnknownRecipientError, match=r"Nobody here is called .bob.*alice, debbie, user"):
        book().resolve_recipient("bob")


def test_an_unknown_agent_is_answered_with_the_valid_names() -> None:
    with pytest.raises(UnknownAgentError, match="Valid names: alice, debbie"):
        book().resolve("bob")


def test_a_name_that_is_misspelt_is_refused_with_the_one_that_may_be_meant() -> None:
    with pytest.raises(UnknownAgentError, match=r"There is no agent 'alic'\. Did you mean 'alice'\? Valid names"):
        book().resolve("alic")
    with pytest.raises(UnknownRecipientError, match="Did you mean 'debbie'"):
        book().resolve_recipient("debie")
    with pytest.raises(UnknownAgentError) as caught:
        book().resolve("zzzz")
    assert "Did you mean" not in caught.value.message


def test_the_user_is_a_recipient_but_not_an_agent() -> None:
    assert book().resolve_recipient("User") == "user"
    with pytest.raises(UnknownAgentError):
        book().resolve("user")


@pytest.mark.parametrize("definition", [AgentDefinition(aliases=("D",)), AgentDefinition(name="alice")])
def test_a_name_that_is_taken_is_refused_and_nothing_is_entered(definition: AgentDefinition) -> None:
    known = book()
    with pytest.raises(DuplicateIdError, match="already means"):
        known.add("carol", definition)
    assert not known.knows("carol")


def test_a_new_definition_brings_new_names_or_keeps_the_old_ones() -> None:
    known = book()
    known.replace("debbie", DEBBIE, AgentDefinition(aliases=("deb",)))
    assert known.resolve("deb") == "debbie"
    assert not known.knows("d")
    with pytest.raises(DuplicateIdError):
        known.replace("debbie", AgentDefinition(aliases=("deb",)), AgentDefinition(name="Alice"))
    assert known.resolve("deb") == "debbie"


@pytest.mark.parametrize("agent_id", ["", " ", "a b", "-a", "user", "USER", "x" * 101, "a/b", "é\n"])
def test_what_cannot_name_an_agent_is_refused(agent_id: str) -> None:
    with pytest.raises(InvalidInputError):
        check_agent_id(agent_id)
