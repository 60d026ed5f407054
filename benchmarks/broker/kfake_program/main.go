// Command kfake runs franz-go's fake broker until it is told to end: kfake PORT
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: kfake PORT")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	if err != nil {
		return err
	}
	defer cluster.Close()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	<-ended
	return nil
}
