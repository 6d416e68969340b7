"""A world and a mind of one's own: a lake, and the people who live on its fish.

Run it with `python examples/own_world.py`; what happened is kept in runs/the-lake-1.
"""

from shoal import Action, BaseWorld, Decision, Mind, Person, Rejected, World


class Lake(BaseWorld):
    """Everybody fishes at once. Over night the fish that are left grow in number, as far as the lake can feed them."""

    actions = {"FISH": {"tonnes": float}}
    tables = "CREATE TABLE lake (round INTEGER, tonnes REAL);"

    def __init__(self, name, given, settings):
        super().__init__(name, given, settings)
        self.tonnes = settings["tonnes"]

    @property
    def over(self):
        return self.tonnes < 1

    def begin(self, round):
        super().begin(round)
        if round:
            self.tonnes = min(1.25 * self.tonnes, self.settings["tonnes"])
        self.add("INSERT INTO lake VALUES (?, ?)", round, self.tonnes)

    def view(self, round, agent):
        return {"tonnes": self.tonnes, "fishers": len(self.people)}

    def act(self, round, agent, action):
        wanted = action.args["tonnes"]
        if not 0 < wanted <= self.tonnes:
            raise Rejected(f"there are {self.tonnes:.1f} tonnes of fish, and not {wanted}")
        self.tonnes -= wanted


class Fisher(Mind):
    """Takes a share of what grows in a night: a fair one, or as many times that as the person is greedy."""

    def __init__(self, given, settings):
        super().__init__(given, settings)
        self.careful = set()

    def decide(self, seen):
        fair = 0.2 * seen.view["tonnes"] / seen.view["fishers"]
        greed = self.given.population[seen.agent].traits["greed"]
        wanted = fair if seen.agent in self.careful or seen.announcements else greed * fair
        return Decision((Action("FISH", {"tonnes": round(wanted, 2)}),))

    def absorb(self, seen, decision):
        if seen.announcements:
            self.careful.add(seen.agent)


def main():
    people = [Person(name, traits={"greed": greed}) for name, greed in [("Ada", 1), ("Ben", 3), ("Cem", 2)]]
    world = World("The lake", people, kind=Lake, mind=Fisher, settings={"tonnes": 100.0})
    world.run(rounds=8, quiet=True)
    world.broadcast("Fish no more than what grows in a night!")
    results = world.run(rounds=8, quiet=True)
    for round, tonnes in results.frame("lake").itertuples(index=False):
        print(f"{round:3} {tonnes:6.1f} {'#' * int(tonnes / 2)}")


if __name__ == "__main__":
    main()
