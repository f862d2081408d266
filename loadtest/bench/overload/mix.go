package main

import (
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/shop"
)

// class is one kind of requests of the load, with a line of its own.
type class struct {
	name   string
	rate   int // a second; 0: the offered rate
	target func(*shop.Shop) vegeta.Targeter
}

// classes are what is sent side by side. Only new orders grow; what should get through in spite of
// them comes at a steady rate.
var classes = []class{
	{"new order", 0, (*shop.Shop).NewOrders},
	{"replay", 50, (*shop.Shop).Replays},
	{"key look-up", 20, (*shop.Shop).LookUps},
	{"card payment", 20, (*shop.Shop).Payments},
	{"list", 20, (*shop.Shop).Lists},
}
