/** The lessons: their blocks run. */
import { executes } from './site.ts'

executes('docs/lessons')
