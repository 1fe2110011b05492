from outlive import Durable, Outlive

app = Outlive("shop")


@app.tool
async def deploy(ctx: Durable, repo: str) -> str:
    """Deploys a repository."""
    approval = await ctx.elicit("approve", f"Deploy {repo}?", bool, outcome=True)
    if approval.action != "accept" or not approval.content:
        return "nothing happened"
    return f"{repo} is deployed"


app.run()
