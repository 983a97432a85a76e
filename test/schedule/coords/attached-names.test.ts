/** Axes that leave with the axes of a tensor that a format replaces. */
import { expect, test } from 'vitest'
import { attachedAxis, denseAxis } from '../../../src/ir/coordinates/axis.ts'
import { int } from '../../../src/ir/expressions/expr.ts'
import { withAttached } from '../../../src/schedule/coordinates/as/tensor-split.ts'

test('what is attached to an axis, or enters the rows of one, leaves with it', () => {
  const axes = [
    denseAxis('i', int(4)),
    denseAxis('j', int(4), 'i'),
    denseAxis('r', int(4)),
    attachedAxis('v', 'j', 'r'),
    attachedAxis('w', 'j', 'v'),
  ]
  const leaving = (name: string) => [...withAttached(axes, new Set([name]))].sort()
  expect(leaving('j')).toEqual(['j', 'v', 'w'])
  expect(leaving('r')).toEqual(['r', 'v', 'w'])
  expect(leaving('v')).toEqual(['v', 'w'])
  expect(leaving('w')).toEqual(['w'])
})
