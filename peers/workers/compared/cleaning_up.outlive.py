from outlive import Cleanup, Durable, Outlive

app = Outlive("shop")


async def reserve(item: str) -> int:
    return len(item)


async def free(shelf: int) -> None:
    print("freed", shelf)


@app.tool
async def order(ctx: Durable, item: str) -> str:
    """Orders an item. Frees its shelf after a cancellation, in any process."""
    shelf = await ctx.step("reserve", reserve, item)
    await ctx.sleep("delivery", seconds=0.1)
    return f"ordered from shelf {shelf}"


@order.cleanup
async def undo(task: Cleanup, item: str) -> None:
    if (shelf := task.get("reserve", int)) is not None:
        await free(shelf)


app.run()
