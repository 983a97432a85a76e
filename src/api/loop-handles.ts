/** Handles of loops: a loop's variable while the coordinates stay, its iteration and name where steps make the loops anew. */
import type { For } from '../ir/loops.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Compilation } from '../run/compile.ts'
import type { LoopHandle } from '../schedule/loop-ref.ts'
import { handle, loopName } from '../schedule/state.ts'

const origins = new WeakMap<LoopHandle, { readonly kernel: Kernel1; readonly name: string }>()

/** `kernel`: what the loop was made of. */
export function handleOf(kernel: Kernel1, { var: variable, nest, name }: For): LoopHandle {
  const made = Object.freeze({ var: variable })
  origins.set(made, { kernel, name: `${nest}.${name}` })
  return made
}

/** The same loop now. @throws SptError `schedule/unknown-loop` where there is none of its name any more */
export function currentHandle(of: LoopHandle, { kernel, state }: Compilation): LoopHandle {
  const origin = origins.get(of)
  return !origin || origin.kernel === kernel ? of : handle(state, origin.name)
}

/** What it is called as an iterator: these have no handles. */
export const iteratorOf = (of: LoopHandle, c: Compilation): string => loopName(c.state, currentHandle(of, c))
