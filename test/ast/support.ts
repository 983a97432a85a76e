import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { render } from '../../src/ast/diagnostics/render.ts'
import type { File } from '../../src/ast/nodes/nodes.ts'
import { parse } from '../../src/schedule/steps/language.ts'

export const read = (text: string, name = 'test.spt'): File => parse({ name, text })

/** The rendered diagnostics that a program earns; fails where it earns none, or another kind of error. */
export function complaint(text: string, name = 'test.spt'): string {
  try {
    read(text, name)
  } catch (e) {
    if (e instanceof SptError) return render(e.diagnostics, [{ name, text }])
    throw e
  }
  throw new Error(`accepted: ${text}`)
}

/** A node without its spans. */
export function bare(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(bare)
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key, value]) => key !== 'span' && value !== undefined)
      .map(([key, value]) => [key, bare(value)]),
  )
}
