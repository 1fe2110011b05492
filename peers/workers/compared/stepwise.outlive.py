from outlive import Durable, Outlive

app = Outlive("shop")


async def build(repo: str) -> str:
    return f"{repo}:1"


async def push(image: str, region: str) -> None:
    print(image, "to", region)


@app.tool
async def deploy(ctx: Durable, repo: str, regions: list[str]) -> str:
    """Builds a repository and pushes it to every region; resumes after a crash."""
    image = await ctx.step("build", build, repo)
    for region in regions:
        await ctx.step(("push", region), push, image, region)
    return f"{image} is out"


app.run()
