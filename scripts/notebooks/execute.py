"""Runs notebooks in Deno's kernel: python3 execute.py JOBS FOLDER OUT NOTEBOOK..."""
import asyncio
import os
import sys
from queue import Empty

import nbformat
from nbclient import NotebookClient

# Seconds without a message, after which a cell that says it is done has said all.
QUIET = 0.5
# Seconds that a cell may take.
CELL_TIMEOUT = 400


async def run(path, folder, out):
    notebook = nbformat.read(path, 4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="deno",
        resources={"metadata": {"path": folder}},
    )

    # At times, the kernel says that it is idle, and then sends the result: nbclient would have gone on.
    async def late(cell, cell_index, execute_reply):
        request = execute_reply["parent_header"]["msg_id"]
        while not any(o.output_type in ("execute_result", "error") for o in cell.outputs):
            try:
                message = await client.kc.iopub_channel.get_msg(timeout=QUIET)
            except Empty:
                return
            if message["parent_header"].get("msg_id") == request:
                client.process_message(message, cell, cell_index)

    client.on_cell_executed = late
    await client.async_execute()
    nbformat.write(notebook, os.path.join(out, os.path.basename(path)))


async def main(jobs, folder, out, paths):
    free = asyncio.Semaphore(jobs)

    async def one(path):
        async with free:
            await run(path, folder, out)

    await asyncio.gather(*map(one, paths))


asyncio.run(main(int(sys.argv[1]), *sys.argv[2:4], sys.argv[4:]))
