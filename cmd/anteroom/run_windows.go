package main

import "os"

// handOverSignals make a process hand its listeners over to a new one: Windows has none.
var handOverSignals []os.Signal
