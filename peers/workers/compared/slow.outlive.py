import asyncio

from outlive import Context, Outlive

app = Outlive("films")


@app.tool
async def render(ctx: Context, film: str, frames: int) -> str:
    """Renders a film."""
    for frame in range(frames):
        await ctx.report_progress(frame, frames, f"frame {frame}")
        await asyncio.sleep(0.1)
    return f"{film} is rendered"


app.run()
