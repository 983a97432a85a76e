/**
 * Handles of loops: the loop's variable while the coordinates are unchanged, otherwise its iteration and name, because steps on
 * coordinates rebuild the loops.
 */

import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { For } from '../../ir/statements/loops.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { LoopHandle } from '../../schedule/names/loop-ref.ts'
import { handle, loopName } from '../../schedule/state/state.ts'

const origins = new WeakMap<LoopHandle, { readonly kernel: Kernel1; readonly name: string }>()

/** Returns a handle of a loop that was built from `kernel`. */
export function handleOf(kernel: Kernel1, { var: variable, nest, name }: For): LoopHandle {
  const made = Object.freeze({ var: variable })
  origins.set(made, { kernel, name: `${nest}.${name}` })
  return made
}

/** Returns the current handle of the same loop. Throws SptError `schedule/unknown-loop` if no loop has its name any more. */
export function currentHandle(of: LoopHandle, { kernel, state }: Compilation): LoopHandle {
  const origin = origins.get(of)
  return !origin || origin.kernel === kernel ? of : handle(state, origin.name)
}

/** The name of the loop as an iterator, for steps on coordinates. */
export const iteratorOf = (of: LoopHandle, c: Compilation): string => loopName(c.state, currentHandle(of, c))
