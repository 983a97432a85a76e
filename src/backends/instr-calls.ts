/** Calls of declared instructions as text. */
import { fail } from '../ast/diagnostic.ts'
import type { CallPiece, InstrCall } from '../ir/loops.ts'
import type { Target } from './target.ts'

/** The text for the target, with `piece` for what it mentions. */
export function callText(
  s: InstrCall,
  target: Target,
  piece: (p: Exclude<CallPiece, string>) => string,
): readonly string[] {
  const text = s.texts.find((t) => t.target === target.name)
  if (!text)
    return fail({
      code: 'emit/no-instruction',
      message: `instruction ${s.instr} has no text for ${target.name}`,
      ...(s.span ? { span: s.span } : {}),
      expected: `a device of ${s.texts.map((t) => t.target).join(' or ')}`,
      hint: `give ${s.instr} a text for ${target.name}, or use another schedule there`,
    })
  const lines = text.pieces
    .map((p) => (typeof p === 'string' ? p : piece(p)))
    .join('')
    .split('\n')
    .map((l) => l.trim())
  return lines.filter((l) => l !== '')
}
