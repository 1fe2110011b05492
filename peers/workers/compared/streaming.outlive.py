from outlive import Durable, Outlive

app = Outlive("books")


@app.tool(streams_content=True)
async def translate(ctx: Durable, pages: list[str]) -> str:
    """Translates a book, page by page. Clients read the pages before the end."""
    for number, page in enumerate(pages):
        await ctx.emit(await ctx.step(("page", number), str.upper, page))
    return f"{len(pages)} pages"


app.run()
