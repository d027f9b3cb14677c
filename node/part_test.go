package node

// member is the node's part in its cluster.
func (n *Node) member() *member { return n.part.(*member) }
