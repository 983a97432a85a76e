import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { render } from '../../src/ast/diagnostics/render.ts'
import { type Elaborated, elaborate } from '../../src/elaborate/index.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { programOf } from '../../src/schedule/steps/language.ts'

export const read = (text: string, name = 'test.spt'): Elaborated => elaborate(programOf({ name, text }))

export function kernelOf(text: string): Kernel1 {
  const [kernel] = read(text).kernels.values()
  if (!kernel) throw new Error(`no kernel in ${text}`)
  return kernel
}

/** The diagnostics that a program earns; fails where it earns none, or another kind of error. */
export function errors(text: string, name = 'test.spt'): SptError['diagnostics'] {
  try {
    read(text, name)
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics
    throw e
  }
  throw new Error(`accepted: ${text}`)
}

export const complaint = (text: string, name = 'test.spt'): string =>
  render(errors(text, name), [{ name, text }])
