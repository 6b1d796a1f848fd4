"""The life of an open session: put together from its parts (`assembly`), taken up from the store (`recovery`,
`trials`), closed cleanly or stopped when the store fails (`opening`).
"""
