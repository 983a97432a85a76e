/** What `spt calibrate` says of a model that fits badly. */
import { expect, test } from 'vitest'
import { doubts } from '../../src/cli/commands/calibrate.ts'

test('a model that is far off is told of, with the file to delete', () => {
  expect(doubts({ error: Math.log(1.24) }, 'cpu.json')).toBe('')
  expect(doubts({ error: Math.log(1.515) }, 'cpu.json')).toMatch(/51\.5\s?% off.*delete cpu\.json/)
})
